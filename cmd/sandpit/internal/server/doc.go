// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package server has the commands that start, end, restore or measure a server on this machine, or look at what the
// host can do. They need Linux; elsewhere they say so.
package server
