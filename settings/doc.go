// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package settings has what an operator changes without a restart: each setting with its value, where
// that comes from, and what it holds for. What a call set is a record, and goes before the
// command line, the environment, the file and the default. It knows no coat, and not what its values do: who opens a
// [Service] says how they are put in force.
package settings
