// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package volumes has the commands about volumes.
package volumes
