// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package message has the words that errors of the agent are told to callers with: those of the kernel, those
// of a disk without room, and text of others cut to a bound. It must not know what failed.
package message
