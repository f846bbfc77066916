// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package query reads the parameters that lists of several parts of the coat have: times, orders, states, pages.
// What is wrong of them is noted in the Spellings of the request, so that one answer lists all of it.
package query
