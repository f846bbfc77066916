// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package seccomp compiles the system call filter of a sandbox's commands.
//
// The list is the one that Docker ships (github.com/moby/profiles/seccomp),
// made stricter by [strictRules], and compiled into classic BPF as a search
// tree over ranges of system call numbers. The shape is the point: at install
// time the kernel runs a filter once for every number it knows, so a linear
// list costs ten times as much as a tree.
//
// The package must not know what installs the program, nor when. It knows no
// driver and no agent. The agent, which lives among untrusted code and must
// stay small, imports only the sub-package install.
package seccomp

//go:generate go run gen.go
