// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/network/preset"
	"sandpit.dev/sandbox"
)

func rules(t *testing.T, lists map[string][]string) Rules {
	t.Helper()
	set, err := preset.New(preset.Options{Lists: lists})
	if err != nil {
		t.Fatal(err)
	}
	return Rules{Presets: set}
}

func image(t *testing.T, pipConf string) Image {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/pip.conf"), []byte(pipConf), 0o644); err != nil {
		t.Fatal(err)
	}
	return Image{Root: dir}
}

// What the caller or the operator says goes over what an image says, exact or by a wildcard.
func TestAnImagesWordCountsForWhatNobodyElseSays(t *testing.T) {
	img := image(t, "[global]\nindex-url = https://a.mirror.test\nextra-index-url = https://b.lists.test https://c.other.test https://own.test\n")
	r := rules(t, map[string][]string{"lists": {"*.lists.test", "*.mirror.test"}})
	p, err := r.Check(&sandbox.NetworkPolicy{
		Mode: sandbox.NetworkRestricted, AllowDomains: []string{"own.test", "any.lists.test"}, AllowPresets: []string{"python", "lists"},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err = r.Resolve(p, func() (Image, error) { return img, nil })
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"own.test", "any.lists.test", "*.lists.test", "*.mirror.test", "c.other.test"}; !slices.Equal(p.AllowDomains, want) {
		t.Errorf("got %q, want %q", p.AllowDomains, want)
	}
	if got, want := Words(p), "network presets python, lists: *.lists.test (operator), *.mirror.test (operator), c.other.test (image)"; got != want {
		t.Errorf("in words: %q, want %q", got, want)
	}
	if got := Words(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}); got != "" {
		t.Errorf("without presets: %q", got)
	}
}

func TestAnImageIsLookedForWhereAPresetReadsItAlone(t *testing.T) {
	r := rules(t, map[string][]string{"lists": {"a.test"}})
	gone := fault.New(fault.State, "the image is gone")
	find := func() (Image, error) { return Image{}, gone }
	for name, want := range map[string]error{"lists": nil, "github": nil, "python": gone} {
		if _, err := r.Resolve(sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowPresets: []string{name}}, find); fault.Of(err) != fault.Of(want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	_, err := r.Resolve(sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowPresets: []string{"node"}}, func() (Image, error) { return image(t, ""), nil })
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "what npm is set to fetch from") {
		t.Errorf("one that stands for nothing: %v", err)
	}
}
