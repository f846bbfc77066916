// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package events serves what changes of a project's records, as a stream, and
// the webhooks that it is sent to.
package events
