// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package shape turns nouns into the types of the wire, api/v1. It holds what several parts of the coat answer
// with; a noun of which one part alone tells is turned there. It knows no request and no service.
package shape
