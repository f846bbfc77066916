"""Proof runs tests: each function test_* of each file test_*.py of a folder is one."""

import importlib.util
import pathlib
import sys
import traceback

from tally import counted


def main(folder):
    passed, failed = 0, 0
    for path in sorted(pathlib.Path(folder).glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name in [n for n in vars(module) if n.startswith("test_")]:
            print(f"{path}::{name}", flush=True)
            try:
                vars(module)[name]()
            except Exception:
                failed += 1
                traceback.print_exc()
                print("FAILED", flush=True)
            else:
                passed += 1
                print("PASSED", flush=True)
    print(counted(passed, "test"), "passed,", failed, "failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
