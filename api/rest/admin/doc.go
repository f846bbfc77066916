// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package admin serves the operations of those who run the server: projects, settings, sandboxes of all projects,
// what is used, the audit log and backups.
package admin
