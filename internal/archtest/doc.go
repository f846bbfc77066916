// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the rules of the house as tests: which package may
// import which, that each has one doc, that each file says whose it is. Each
// rule gives its reason when it fails.
package archtest
