// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package expiry says which clock of a sandbox has struck, what is to be done for it, and when it is
// to be looked at next. It reads records and times, and does nothing itself.
package expiry
