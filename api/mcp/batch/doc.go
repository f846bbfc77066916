// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package batch is runs of several commands as tools have them: their arguments, the wait
// for their end, and what is shown of them. More than one profile has such a tool.
package batch
