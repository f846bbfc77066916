// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package login has the commands about servers elsewhere: signing in, and which one is in use.
package login
