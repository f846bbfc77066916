// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package terminaltest gives tests a terminal and whoever sits at it. It needs Linux.
package terminaltest
