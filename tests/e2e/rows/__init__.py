"""Programs and what their results must be, by kind. A kind is a family of faults that users of such tools reported."""

from . import arguments, endings, language, libraries, output, scripts

KINDS = {**scripts.KINDS, **language.KINDS, **output.KINDS, **endings.KINDS, **libraries.KINDS, **arguments.KINDS}
