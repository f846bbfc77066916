// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package storetest is the contract of package store as a test suite. Every
// store passes it; it looks at a store only through the contract.
package storetest
