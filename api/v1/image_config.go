// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

// ImageType is the media type of an archive of images.
const ImageType = "application/x-tar"

// ImageDigestHeader has the digest of a saved image: of the manifest in its archive.
const ImageDigestHeader = "Sandpit-Image-Digest"

// ImageConfig is what the maker of an imported image wrote about it. Its variables hold in sandboxes;
// commands run as the sandbox's own user, and the rest is told.
type ImageConfig struct {
	Architecture string            `json:"architecture"`
	ImageID      string            `json:"image_id" jsonschema:"the digest of its config, which Docker calls the image's id"`
	User         string            `json:"user,omitempty"`
	WorkingDir   string            `json:"working_dir,omitempty"`
	Entrypoint   []string          `json:"entrypoint,omitempty"`
	Cmd          []string          `json:"cmd,omitempty"`
	Env          map[string]string `json:"env,omitempty" jsonschema:"variables that commands get, but for those of an account"`
	Labels       map[string]string `json:"labels,omitempty"`
	Ports        []string          `json:"ports,omitempty" jsonschema:"that the image's own program listens on: 80/tcp"`
	Layers       []string          `json:"layers" jsonschema:"digests of its layers as they were transported, the lowest first"`
	LeftOut      int               `json:"devices_left_out,omitempty" jsonschema:"device nodes that it has and a sandbox does not get"`
	Foreign      int               `json:"foreign_owners,omitempty" jsonschema:"files of users above 65535, which belong to nobody here"`
}

// PullImage says which image is brought from its registry.
type PullImage struct {
	Reference string `json:"reference" jsonschema:"as Docker writes it: debian:12-slim, ghcr.io/owner/name:tag, name@sha256:…"`
}
