// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package tokens serves the operations on bearer tokens of the API.
package tokens
