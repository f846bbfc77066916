// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package languages runs language servers in sandboxes: one for each directory of a project and language, which is a process
// of the sandbox's image that package lsp speaks to. It stands above the engine, and is an [engine.Extension] of it.
//
// A server is on record while it runs, as an event that its end completes. It is no use of its sandbox by itself. It ends when it is
// stopped, when nobody has asked it for anything in a while, when it breaks the protocol, and with its sandbox. What an earlier
// server of ours left running is ended when its sandbox is found again, since nobody knows what it was told.
//
// Callers speak of files. What a file says now is told to the language server before each question about it.
package languages
