// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package tally

// legacyNames are those that only older architectures have, which this is not.
var legacyNames map[int]string
