// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/network/preset"
	"sandpit.dev/sandbox"
)

// rooted are images whose files are in a directory of the test's.
type rooted struct {
	catalogue
	root string
}

func (r rooted) Find(ctx context.Context, name string) (image.Image, error) {
	if name == "node" { // which is not built
		return image.Image{}, fault.New(fault.NotFound, "the image is not built")
	}
	return r.Ensure(ctx, name)
}

func (r rooted) Ensure(ctx context.Context, name string) (image.Image, error) {
	img, err := r.catalogue.Ensure(ctx, name)
	img.Root = r.root
	return img, err
}

func (r rooted) FindDigest(name, _ string) (image.Image, error) {
	return r.Ensure(context.Background(), name)
}

func writeImage(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// presets makes a house of images with settings of pip and npm, and with presets of the operator's.
func presets(t *testing.T, change ...func(*engine.Options)) (*house, string) {
	t.Helper()
	root := t.TempDir()
	writeImage(t, root, "etc/pip.conf", "[global]\nindex-url = https://index.test/simple\nextra-index-url = https://own.test\n")
	host := t.TempDir()
	writeImage(t, host, "etc/npmrc", "registry=https://host.test/\n")
	many := make([]string, sandbox.MaxAllowDomains)
	for n := range many {
		many[n] = fmt.Sprintf("h%d.test", n)
	}
	set, err := preset.New(preset.Options{
		Host: preset.Machine{Files: os.DirFS(host)}, Lists: map[string][]string{"intranet": {"git.test", "*.pages.test"}, "many": many, "huggingface": {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := wire(t, append([]func(*engine.Options){func(o *engine.Options) {
		o.Images = rooted{root: root}
		o.Network.Presets, o.Network.Curated = set, nil
	}}, change...)...)
	return h, root
}

func reaching(names ...string) *sandbox.NetworkPolicy {
	return &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowPresets: names}
}

func TestPresets(t *testing.T) {
	h, root := presets(t)
	t.Run("AreNamesFromTheCallOn", func(t *testing.T) {
		p := reaching("python", "node", "intranet", "python")
		p.AllowDomains = []string{"Own.test", "first.test"}
		s := h.create(engine.CreateRequest{Key: "net", Network: p})
		// own.test is the caller's word, whoever else says it.
		if want := []string{"own.test", "first.test", "host.test", "git.test", "*.pages.test", "index.test"}; !slices.Equal(s.Network.AllowDomains, want) {
			t.Errorf("it may reach %q, want %q", s.Network.AllowDomains, want)
		}
		if want := []string{"python", "node", "intranet"}; !slices.Equal(s.Network.AllowPresets, want) {
			t.Errorf("presets %q, want %q", s.Network.AllowPresets, want)
		}
		if want := []sandbox.PresetDomain{
			{Preset: "node", Domain: "host.test", Source: "host"},
			{Preset: "intranet", Domain: "git.test", Source: "operator"}, {Preset: "intranet", Domain: "*.pages.test", Source: "operator"},
			{Preset: "python", Domain: "index.test", Source: "image"},
		}; !slices.Equal(s.Network.PresetDomains, want) {
			t.Errorf("by whom: %+v, want %+v", s.Network.PresetDomains, want)
		}
		created := h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted)[0]
		if !strings.Contains(created.Detail, "network presets python, node, intranet: host.test (host), git.test (operator), *.pages.test (operator), index.test (image)") {
			t.Errorf("the event says %q", created.Detail)
		}
		// What the image says later is not what was said.
		writeImage(t, root, "etc/pip.conf", "[global]\nindex-url = https://later.test/simple\n")
		got, err := h.engine.Get(t.Context(), alice, "net")
		if err != nil || !got.Network.Equal(s.Network) {
			t.Errorf("before another call: %+v, %v", got.Network, err)
		}
		got, err = h.engine.Update(t.Context(), alice, "net", update.Patch{Network: reaching("python")})
		if err != nil || !slices.Equal(got.Network.AllowDomains, []string{"later.test"}) {
			t.Errorf("after an update: %+v, %v", got.Network, err)
		}
	})
	t.Run("NoCallerSaysWhoSaidIt", func(t *testing.T) {
		p := reaching("intranet")
		p.PresetDomains = []sandbox.PresetDomain{{Preset: "x", Domain: "y", Source: "z"}}
		s := h.create(engine.CreateRequest{Network: p})
		if len(s.Network.PresetDomains) != 2 {
			t.Errorf("%+v", s.Network.PresetDomains)
		}
	})
	refused := func(t *testing.T, code fault.Code, p *sandbox.NetworkPolicy, words ...string) {
		t.Helper()
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "refused", Network: p})
		wantCode(t, err, code)
		e := fault.As(err)
		for _, w := range words {
			if text := e.Message + " " + e.Remedy; !strings.Contains(text, w) {
				t.Errorf("%q does not say %q", text, w)
			}
		}
		if _, err := h.engine.Get(t.Context(), alice, "refused"); !fault.Is(err, fault.NotFound) {
			t.Errorf("something is left: %v", err)
		}
	}
	t.Run("ThatThereAreNotAreRefusedWithThoseThatThereAre", func(t *testing.T) {
		refused(t, fault.Invalid, reaching("pyhton"), `"pyhton"`, "debian, github, intranet, many, node, python")
	})
	t.Run("RestrictedWithoutAListIsRefusedWithThem", func(t *testing.T) {
		refused(t, fault.Invalid, reaching(), "allow_domains", "debian, github, intranet, many, node, python")
		p := reaching()
		p.Learn = true
		h.create(engine.CreateRequest{Network: p}) // it is what teaches the list
	})
	t.Run("ThatStandForNothingAreRefused", func(t *testing.T) {
		refused(t, fault.Invalid, reaching("debian"), "stands for no host", "network.presets.debian")
	})
	t.Run("AreBoundedTogether", func(t *testing.T) {
		refused(t, fault.Invalid, reaching("many", "github"), "259 entries")
		refused(t, fault.Invalid, reaching(make([]string, sandbox.MaxAllowPresets+1)...), "17 entries")
	})
	t.Run("MeanNothingInOtherModes", func(t *testing.T) {
		refused(t, fault.Invalid, &sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, AllowPresets: []string{"python"}}, "mode open")
	})
	t.Run("AreTold", func(t *testing.T) {
		all, built, err := h.engine.Presets(t.Context(), alice, "")
		if err != nil || !built || len(all) != 6 || all[5].Name != "python" || len(all[5].Domains) != 1 || all[5].Domains[0].Source != "image" {
			t.Errorf("%+v, %v, %v", all, built, err)
		}
		all, built, err = h.engine.Presets(t.Context(), alice, "node")
		if err != nil || built || len(all[5].Domains) != 0 || len(all[4].Domains) != 1 {
			t.Errorf("of an image that is not built: %+v, %v, %v", all, built, err)
		}
		_, _, err = h.engine.Presets(t.Context(), alice, "nowhere")
		wantCode(t, err, fault.NotFound)
		_, _, err = h.engine.Presets(t.Context(), nobody, "")
		wantCode(t, err, fault.Denied)
	})
}

func TestPresetsAreNoWiderThanTheOperatorAllows(t *testing.T) {
	h, _ := presets(t, func(o *engine.Options) { o.Network.Most = sandbox.NetworkOff })
	_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Network: reaching("intranet")})
	wantCode(t, err, fault.Denied)
}

func TestTheOperatorsNetworkIsOfWhoeverAsksForNone(t *testing.T) {
	h, _ := presets(t, func(o *engine.Options) {
		o.Network.Default = sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: []string{"first.test"}, AllowPresets: []string{"debian", "python"}}
	})
	// debian stands for nothing in this image: who did not ask for it is not refused for it.
	s := h.create(engine.CreateRequest{Key: "unasked"})
	if want := []string{"first.test", "index.test", "own.test"}; !slices.Equal(s.Network.AllowDomains, want) || !slices.Equal(s.Network.AllowPresets, []string{"python"}) {
		t.Errorf("%+v, want the names %q", s.Network, want)
	}
	for _, p := range []*sandbox.NetworkPolicy{{Mode: sandbox.NetworkOff}, reaching("intranet")} {
		if s := h.create(engine.CreateRequest{Network: p}); s.Network.Mode != p.Mode || slices.Contains(s.Network.AllowDomains, "first.test") {
			t.Errorf("of one that asks for %+v: %+v", *p, s.Network)
		}
	}
	if p := h.engine.DefaultNetwork(); p.Mode != sandbox.NetworkRestricted || !slices.Equal(p.AllowPresets, []string{"debian", "python"}) {
		t.Errorf("told is %+v", p)
	}
	h, _ = presets(t, func(o *engine.Options) {
		o.Network.Default = sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowPresets: []string{"debian"}}
	})
	if s := h.create(engine.CreateRequest{}); s.Network.Mode != sandbox.NetworkOff || s.Network.AllowPresets != nil {
		t.Errorf("where nothing is left: %+v", s.Network)
	}
	h, _ = presets(t)
	if p := h.engine.DefaultNetwork(); p.Mode != sandbox.NetworkOff {
		t.Errorf("as shipped: %+v", p)
	}
}

// bound is an update's, which says no, and what it was asked.
type bound struct{ was, becomes sandbox.NetworkPolicy }

func (b *bound) Within(was, becomes sandbox.NetworkPolicy) error {
	b.was, b.becomes = was, becomes
	return fault.New(fault.State, "no")
}

func TestAnUpdateIsHeldToItsBound(t *testing.T) {
	h, root := presets(t)
	s := h.create(engine.CreateRequest{Key: "net", Network: reaching("python")})
	writeImage(t, root, "etc/pip.conf", "[global]\nindex-url = https://later.test/simple\n")
	b := &bound{}
	_, err := h.engine.Update(t.Context(), alice, "net", update.Patch{Key: new("other"), Network: reaching("python", "intranet"), Bound: b})
	wantCode(t, err, fault.State)
	if !b.was.Equal(s.Network) || !slices.Equal(b.becomes.AllowDomains, []string{"git.test", "*.pages.test", "later.test"}) || len(b.becomes.PresetDomains) != 3 {
		t.Errorf("it is asked of %+v, which was %+v", b.becomes, b.was)
	}
	if got, err := h.engine.Get(t.Context(), alice, "net"); err != nil || !got.Network.Equal(s.Network) {
		t.Errorf("a bound refused, and it is %+v, %v", got, err)
	}
}
