// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package entry reads entries of the catalogue that are files: what an image begins with and the
// steps that make the rest of it. It knows the form of the files, and neither how a step is done nor
// where an image is kept.
//
// A file is YAML and at most 256 KiB. Names of packages have to match strict patterns and are given to
// the package tools as arguments behind "--", so that nothing of a list becomes an option or a piece
// of a shell's text. A command under run is meant for a shell: who writes the file decides what it does,
// inside a sandbox, as that sandbox's root.
package entry
