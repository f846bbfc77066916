// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package cost measures what pages of the console cost a browser: times until something is drawn, tasks that keep a page
// from answering, what its scripts hold. It drives a tab of test/browser; of a server it knows the address and a token.
package cost
