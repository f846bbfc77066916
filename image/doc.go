// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package image builds and keeps the root file systems that sandboxes share.
//
// A catalogue names what can be had; every entry has a recipe that builds it
// on this machine from the distribution's packages. A built image is a
// directory that is never changed again: sandboxes lay their own writable
// layer over it. The package knows nothing of sandboxes, runtimes, tokens or
// databases: it turns a name into a directory and says what is inside.
//
// # On disk
//
//	DIR/.lock                  one builder at a time, of all processes
//	DIR/cache/apt/             downloaded packages, used again by the next build
//	DIR/cache/node/            downloaded Node archives
//	DIR/NAME/.building/        the build that is going on, or that was killed
//	DIR/NAME/DIGEST12/rootfs/  an image's files
//	DIR/NAME/DIGEST12/image.json
//	DIR/.oci/                  images that others made, see package oci
//
// An image appears by one rename of a complete and flushed directory, so what
// has a digest for a name is whole. A killed build leaves only .building,
// which the next build of the same recipe continues at the first stage that
// did not end; packages that were downloaded are not fetched again.
//
// # What a build trusts
//
// Packages are verified by the tools that fetch them (apt's signatures, the
// registries' checksums). Still their files may be hostile to paths: archives
// that this package opens itself are unpacked through [os.Root], and programs
// of the new root run only in a chroot with mount, process, IPC and (except
// for one download) network namespaces of their own, without privileges.
// Every program of a build lives in a process namespace that dies with this
// process, and its mounts die with it.
//
// # What Python caches
//
// Python and pytest take a cached .pyc for a source's by size and time in whole
// seconds. The image's sitecustomize.py keeps none of a source that is less than
// two seconds old, so that the next edit within that second is not passed over.
// It holds for the image's own Python and virtual environments of it. What
// py_compile is called for by a program of the user's, and Pythons that the user
// installs, follow Python's own rule.
//
// # Where Node comes from
//
// Debian 12 has Node 18; python has Node 22, which runs TypeScript. It is
// fetched by the host's npm where there is one, so the host's npm
// configuration is honoured. A fresh Debian has no npm, and its own package of
// it draws in hundreds of others; there the new root's own pip fetches a wheel
// that carries the same Node and its npm, so nothing more is installed on the
// host. node is an entry: its steps fetch that wheel in a sandbox.
package image
