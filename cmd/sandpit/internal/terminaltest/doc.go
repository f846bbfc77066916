// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package terminaltest opens pseudo terminals for tests, and types at them. It needs Linux.
package terminaltest
