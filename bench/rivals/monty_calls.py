"""Monty: `used` is a new session in a worker process that has served others, `new` starts a worker for each call."""

import schedule
from pydantic_monty import Monty


def run(pool, code):
    printed = []
    with pool.checkout() as session:
        session.feed_run(code, print_callback=lambda _, text: printed.append(text))
    return "".join(printed)


def run_in_new_worker(code):
    with Monty(max_processes=1) as pool:
        return run(pool, code)


def main():
    args = schedule.options(["used", "new"])
    if args.mode == "new":
        schedule.measure(args, run_in_new_worker)
        return
    with Monty(max_processes=1) as pool:
        schedule.measure(args, lambda code: run(pool, code))


if __name__ == "__main__":
    main()
