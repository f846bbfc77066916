// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package cgroupfs is what both versions of cgroups are used with: calls on the files of an
// open group, where hierarchies are mounted, and the group sandpit/NAMESPACE of each, with the
// lock that says that a server uses it.
//
// It knows no controller, no limit and no layout below a namespace.
package cgroupfs
