// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package skills has the commands about skills.
package skills
