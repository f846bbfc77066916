// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

// Events of a push.
const (
	PushProgress = "progress" // data: PushStep
	PushDone     = "pushed"   // data: PushedImage; the last event
)

// PushImage says where an image goes.
type PushImage struct {
	Reference string `json:"reference" jsonschema:"registry, name and tag: registry.example/team/app:1"`
}

// PushStep is how far a push is.
type PushStep struct {
	SentBytes  int64 `json:"sent_bytes" jsonschema:"with what the registry had"`
	TotalBytes int64 `json:"total_bytes" jsonschema:"0 while the image is read"`
}

// PushedImage is an image that is in a registry.
type PushedImage struct {
	Reference string `json:"reference" jsonschema:"whole, with its registry"`
	Digest    string `json:"digest" jsonschema:"of the manifest: the same on every machine that pushes this image"`
	SizeBytes int64  `json:"size_bytes"`
	SentBytes int64  `json:"sent_bytes" jsonschema:"what the registry did not have"`
}
