# Copyright 2026 The sandpit authors
# SPDX-License-Identifier: Apache-2.0

# Python imports this file at every start, also in a virtual environment.
#
# A cached .pyc belongs to its source if it has the source's size and its time in whole seconds. A
# source that is edited twice in a second and keeps its size would run as it was. So no .pyc is kept
# of a source that was less than two seconds old when it was read: any later edit gives it another
# time. What is cached costs no more than before.

import os
import sys
from time import time

import _frozen_importlib_external as external


def recent(mtime):
    return time() - mtime < 2


def replace_loader_methods(loader):
    path_stats, cache_bytecode = loader.path_stats, loader._cache_bytecode

    def noted_path_stats(self, path):
        stats = path_stats(self, path)
        if recent(stats["mtime"]):
            self.source_is_recent = True
        return stats

    def checked_cache_bytecode(self, source_path, bytecode_path, data):
        if not self.__dict__.pop("source_is_recent", False):
            cache_bytecode(self, source_path, bytecode_path, data)

    loader.path_stats, loader._cache_bytecode = noted_path_stats, checked_cache_bytecode


class PytestFinder:
    """Has pytest's own cache of rewritten tests follow the same rule."""

    name = "_pytest.assertion.rewrite"

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != cls.name:
            return None
        sys.meta_path.remove(cls)
        spec = external.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, external.SourceFileLoader):
            exec_module = spec.loader.exec_module

            def exec_and_replace(module):
                exec_module(module)
                cls.replace(module)

            spec.loader.exec_module = exec_and_replace
        return spec

    @staticmethod
    def replace(module):
        rewrite = getattr(module, "_rewrite_test", None)
        if rewrite is None:
            return

        def rewrite_test(fn, config):
            began = time()
            stat, code = rewrite(fn, config)
            if began - stat.st_mtime < 2:
                # pytest writes the time 0 into the .pyc, so it never takes it.
                stat = os.stat_result(stat[:8] + (0,) + stat[9:10])
            return stat, code

        module._rewrite_test = rewrite_test


replace_loader_methods(external.SourceFileLoader)
sys.meta_path.insert(0, PytestFinder)

# These compare contents instead of times where this variable is set.
if sys.orig_argv[1:2] == ["-m"] and sys.orig_argv[2:3] in (["py_compile"], ["compileall"]):
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
