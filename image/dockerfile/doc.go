// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package dockerfile reads Dockerfiles: it returns the stages of one, and of a stage the steps that change
// files and the config that the image has at its end. It does no step, and knows no sandbox and no image on disk.
//
// The text is parsed, and its variables are expanded, by BuildKit's own packages. What the parser takes and this
// program cannot do is refused with the number of its line, before anything runs: fault.Unsupported, with what
// to write in its place. Only the stages that the target needs are looked at so.
//
// # What a step is
//
// RUN, COPY, ADD and WORKDIR are steps. ENV, ARG, USER, SHELL and the rest change what the steps behind
// them are given, and the config. A [Step] has all that decides what it makes, so that its hash is a key of a
// cache.
//
// # The context
//
// A [Context] is the files that COPY and ADD take from, as they came in an archive, which is hostile. None
// of its names is ever one of the host's: the content is in one file without a name, and the names are looked up in memory.
package dockerfile
