// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command kernels checks sandpit on the kernels that Debian has, oldest first, each in a
// virtual machine: `make kernels` as root, on Debian. It takes hours where
// the machine has to be emulated; CONTRIBUTING.md says when to run it.
//
// It fetches the kernels' packages by the host's own package sources with other suites,
// builds a small Debian once, and boots each kernel with a disk that has the built
// program, compiled tests and the tests' image. The program inside runs what it is told
// to, and tells over the console what came of it. All that is made here is under one
// cache directory, which may be removed at any time.
//
// It knows the client's program and the test binaries, and nothing of how a server works.
package main
