// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package sandbox holds the nouns of sandpit: what a sandbox is, the states it goes through, what
// it may use, what happened to it. It is plain data with its rules. It does not know how a
// sandbox is isolated (package runtime), stored (store), driven (engine) or represented on a wire
// (api).
package sandbox
