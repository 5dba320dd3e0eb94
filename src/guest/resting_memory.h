// Lets the memory of a template rest in a sealed file, so that forks cost what they touch.
//
// fork() copies a page table entry for every page of anonymous memory, and the end of the fork takes each
// apart again. A private mapping of a file is passed over instead, and its pages come when they are looked
// at. The content is the same, and nobody can change it: what a fork writes is its own copy, as ever.
#pragma once

namespace prims::guest {

/// From now on notes where the interpreter keeps its objects: only what is known to be theirs can move later.
void note_object_memory();

/// Moves the C library's heap, the objects noted and the variables of all libraries into a file. Other memory
/// stays, since it may belong to an allocator that lets go of pages and counts on zeros in their place, or
/// grow in place by mremap(). To be called with one thread. Where something fails, what has not moved stays
/// as it is.
void rest_memory();

}  // namespace prims::guest
