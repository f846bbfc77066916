// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package background starts a server on this machine that outlives the process that started it. It needs Linux.
package background
