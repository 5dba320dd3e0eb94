"""A Jupyter kernel: `used` sends every call to one kernel (and so to one state), `new` starts a kernel for each call."""

import schedule
from jupyter_client.manager import KernelManager, start_new_kernel


def run(client, code):
    printed = []

    def output(message):
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    client.execute_interactive(code, allow_stdin=False, output_hook=output, timeout=120)
    return "".join(printed)


def stop(manager: KernelManager, client):
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run_in_new_kernel(code):
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        return run(client, code)
    finally:
        stop(manager, client)


def main():
    args = schedule.options(["used", "new"])
    if args.mode == "new":
        schedule.measure(args, run_in_new_kernel)
        return
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        schedule.measure(args, lambda code: run(client, code))
    finally:
        stop(manager, client)


if __name__ == "__main__":
    main()
