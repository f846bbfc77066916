// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package sessions serves the operations by which people sign in with a browser, and out.
package sessions
