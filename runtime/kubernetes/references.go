// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// ImageReference is what nodes know an image of the server's by. The digest is the server's own, "sha256:" and 64 hex digits.
func ImageReference(images, digest string) string {
	return images + "/image:" + strings.TrimPrefix(digest, "sha256:")
}

// AgentReference is what nodes know the image by that has the agent with a digest: /sandpit-agent, and nothing else.
func AgentReference(images, digest string) string { return images + "/agent:" + digest }

// minorOf returns the minor version of Kubernetes 1; 0 where it makes no sense. Some say "33+".
func minorOf(v version.Info) int {
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if err != nil || v.Major != "1" {
		return 0
	}
	return minor
}
