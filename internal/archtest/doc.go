// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the rules of the project as tests: which package may import which, how
// large one may be, that each has one doc, that each file names its owner. A rule that fails
// prints its reason. It draws the import graph of ARCHITECTURE.md.
package archtest
