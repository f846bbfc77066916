// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"sandpit.dev/fault"
)

// Media types of what a manifest names. Docker's are the older spelling of the same.
const (
	ociManifest    = "application/vnd.oci.image.manifest.v1+json"
	ociIndex       = "application/vnd.oci.image.index.v1+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// descriptor names a blob by its digest.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Variant      string `json:"variant,omitempty"`
}

// document is a manifest or an index: which, its fields say.
type document struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
	Config        *descriptor  `json:"config"`
	Layers        []descriptor `json:"layers"`
}

// Bounds of what describes an image.
const (
	maxManifest  = 4 << 20 // bytes of a manifest or an index
	maxConfig    = 4 << 20
	maxManifests = 1000 // entries of an index
	maxLayers    = 256
	maxNesting   = 4 // indexes within indexes
	maxEnv       = 500
	maxEnvBytes  = 64 << 10
	maxWords     = 256 // of an entry point or a command
	maxLabels    = 1000
	maxTextBytes = 64 << 10 // of the labels, of the words, of the ports together
)

// Config is what an image's maker wrote about running it.
type Config struct {
	User       string            `json:"user,omitempty"`
	WorkingDir string            `json:"working_dir,omitempty"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Cmd        []string          `json:"cmd,omitempty"`
	Env        []string          `json:"env,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Ports      []string          `json:"ports,omitempty"` // sorted: 80/tcp
}

// configFile is the blob that a manifest calls its config.
type configFile struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		User         string
		WorkingDir   string
		Entrypoint   []string
		Cmd          []string
		Env          []string
		Labels       map[string]string
		ExposedPorts map[string]struct{}
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// refused is a fault of an image's own: nothing that the caller can mend but the image.
func refused(format string, args ...any) error {
	return fault.New(fault.Invalid, "the image is refused: %s", fmt.Sprintf(format, args...)).
		WithRemedy("have it made anew by the tool that made it, or use another one")
}

// parseDocument reads a manifest or an index, which is hostile.
func parseDocument(data []byte) (document, error) {
	var d document
	if len(data) > maxManifest {
		return d, refused("its manifest has more than %d bytes", maxManifest)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return d, refused("its manifest cannot be read: %v", err)
	}
	if d.SchemaVersion != 2 {
		return d, refused("its manifest has schema %d; this server reads 2", d.SchemaVersion)
	}
	if len(d.Manifests) > 0 && (d.Config != nil || len(d.Layers) > 0) {
		return d, refused("its manifest is also an index")
	}
	if len(d.Manifests) > maxManifests {
		return d, refused("its index has %d entries, more than %d", len(d.Manifests), maxManifests)
	}
	if d.isIndex() {
		for _, m := range d.Manifests {
			if err := m.check(maxManifest); err != nil {
				return d, err
			}
		}
		return d, nil
	}
	if d.Config == nil {
		return d, refused("its manifest names no config")
	}
	if len(d.Layers) > maxLayers {
		return d, refused("it has %d layers, more than %d", len(d.Layers), maxLayers)
	}
	if err := d.Config.check(maxConfig); err != nil {
		return d, err
	}
	for _, l := range d.Layers {
		if err := l.check(maxBlob); err != nil {
			return d, err
		}
		if strings.Contains(l.MediaType, "foreign") || strings.Contains(l.MediaType, "nondistributable") {
			return d, refused("its layer %s is kept elsewhere (%s), from where this server takes nothing", shown(l.Digest), shown(l.MediaType))
		}
		if !strings.Contains(l.MediaType, "tar") {
			return d, refused("its layer %s is %s, which is no archive of files", shown(l.Digest), shown(l.MediaType))
		}
	}
	return d, nil
}

// isIndex reports whether d lists manifests. One that lists none and has no config is an empty index.
func (d document) isIndex() bool {
	return d.MediaType == ociIndex || d.MediaType == dockerList || d.Config == nil && d.MediaType == "" && d.Layers == nil
}

func (d descriptor) check(most int64) error {
	if !isDigest(d.Digest) {
		return refused("%s is not sha256: and 64 lower-case hex digits", shown(d.Digest))
	}
	if d.Size < 0 || d.Size > most {
		return refused("%s is said to have %d bytes; want 0 to %d", d.Digest, d.Size, most)
	}
	return nil
}

// choose returns the entry of an index for an architecture. Entries that say no platform are taken
// only where no entry says one; attestations say that they are of no system.
func (d document) choose(arch string) (descriptor, error) {
	var silent, fitting []descriptor
	var has []string
	for _, m := range d.Manifests {
		switch {
		case m.Platform == nil || m.Platform.OS == "" && m.Platform.Architecture == "":
			silent = append(silent, m)
		case m.Platform.OS == "linux" && m.Platform.Architecture == arch:
			fitting = append(fitting, m)
		case m.Platform.OS != "unknown":
			has = append(has, shown(m.Platform.OS+"/"+m.Platform.Architecture))
		}
	}
	if len(fitting) > 0 {
		// Of several variants the first is the plainest, by the order that all tools write.
		return fitting[0], nil
	}
	if len(has) == 0 && len(silent) > 0 {
		return silent[0], nil
	}
	if len(has) > 8 {
		has = append(has[:8], "…")
	}
	return descriptor{}, fault.New(fault.Unsupported, "the image is not made for this machine, linux/%s; it is made for: %s", arch, strings.Join(has, ", ")).
		WithRemedy("use an image that is made for linux/%s", arch)
}

// hostArch is what images call this machine.
func hostArch() string { return runtime.GOARCH }

// parseConfig reads an image's config for layers of that number, and returns what holds of it.
func parseConfig(data []byte, layers int, arch string) (configFile, Config, error) {
	var f configFile
	if len(data) > maxConfig {
		return f, Config{}, refused("its config has more than %d bytes", maxConfig)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, Config{}, refused("its config cannot be read: %v", err)
	}
	if f.OS != "" && f.OS != "linux" || f.Architecture != "" && f.Architecture != arch {
		return f, Config{}, fault.New(fault.Unsupported, "the image is made for %s, and this machine is linux/%s", shown(f.OS+"/"+f.Architecture), arch).
			WithRemedy("use an image that is made for linux/%s", arch)
	}
	if len(f.RootFS.DiffIDs) != layers {
		return f, Config{}, refused("its config tells of %d layers, its manifest of %d", len(f.RootFS.DiffIDs), layers)
	}
	for _, id := range f.RootFS.DiffIDs {
		if !isDigest(id) {
			return f, Config{}, refused("%s is not sha256: and 64 lower-case hex digits", shown(id))
		}
	}
	c := f.Config
	out := Config{User: c.User, WorkingDir: c.WorkingDir, Entrypoint: c.Entrypoint, Cmd: c.Cmd, Labels: c.Labels}
	total := 0
	for _, kv := range c.Env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.ContainsRune(kv, 0) {
			return f, Config{}, refused("%s in its environment is not NAME=value", shown(kv))
		}
		total += len(name) + len(value) + 2
		out.Env = append(out.Env, kv)
	}
	if len(c.Env) > maxEnv || total > maxEnvBytes {
		return f, Config{}, refused("it sets %d variables of %d bytes, more than %d of %d", len(c.Env), total, maxEnv, maxEnvBytes)
	}
	total = len(c.User) + len(c.WorkingDir)
	for k, v := range c.Labels {
		total += len(k) + len(v)
	}
	for _, w := range slices.Concat(c.Entrypoint, c.Cmd) {
		total += len(w)
	}
	for p := range c.ExposedPorts {
		out.Ports = append(out.Ports, p)
		total += len(p)
	}
	slices.Sort(out.Ports)
	if len(c.Labels) > maxLabels || len(c.Entrypoint)+len(c.Cmd) > maxWords || len(out.Ports) > maxWords || total > maxTextBytes {
		return f, Config{}, refused("its config has %d labels, %d words of a command and %d ports of %d bytes, more than %d, %d and %d of %d",
			len(c.Labels), len(c.Entrypoint)+len(c.Cmd), len(out.Ports), total, maxLabels, maxWords, maxWords, maxTextBytes)
	}
	return f, out, nil
}
