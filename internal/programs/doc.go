// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package programs finds programs of others, or fetches them without installing anything, and has
// them run where what they mount and leave behind is gone with who started them. The benchmark
// compares with such programs, and tests run against them.
package programs
