// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway serves routes of the MCP Gateway in its form, for clients that were written for it: quotas of its
// users, who are projects here, its logs, which are the audit log, and its images. All of it can be had in a form of
// this server's own, too.
package gateway
