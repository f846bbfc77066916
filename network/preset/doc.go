// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package preset knows what the names of presets stand for: lists of hosts that go by one word, such
// as python for those that pip fetches from.
//
// Those of package tools are read from the tools' own settings and defaults, in a sandbox's image and
// on the server's host, so that a mirror is found where one is set. Those of services are what their
// owners publish. The operator replaces, removes and adds.
//
// # What an image says
//
// Whoever made an image chose its files. They are read through a file system that ends at the image's
// root, regular files only, of bounded size and number. What comes out are exact names of hosts with a
// dot, at most [MaxHosts] of an image and a preset, and never a wildcard or an address. Each is marked
// with [sandbox.PresetFromImage], by which the policy holds its addresses to the public internet also
// where the operator allows more.
package preset
