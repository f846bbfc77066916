// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package network has the commands about what sandboxes may reach, and the flags that say so.
package network
