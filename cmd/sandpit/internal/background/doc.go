// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package background starts a server of this machine that outlives whoever started it. It needs Linux.
package background
