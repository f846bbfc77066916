// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preset

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// What the programs of the tools say of their defaults, as they write it.
const (
	pipProgram = "class PackageIndex:\n    pass\n\n\nPyPI = PackageIndex(\"https://index.test/\", file_storage_domain=\"files.test.example\")\n" +
		"TestPyPI = PackageIndex(\n    \"https://other.test/\", file_storage_domain=\"other-files.test\"\n)\n"
	npmProgram = "  'prefix': new Definition('prefix', {\n    default: '/usr',\n  }),\n  registry: new Definition('registry', {\n    default: 'https://registry.test/',\n    type: url,\n  }),\n"

	pipAt = "usr/lib/python3/dist-packages/pip/_internal/models/index.py"
	npmAt = "usr/local/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js"
)

func machine(files map[string]string, variables ...string) Machine {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return Machine{Files: all, Homes: []string{"home/sandbox", "root"}, Env: func(name string) string {
		for i := 0; i < len(variables); i += 2 {
			if variables[i] == name {
				return variables[i+1]
			}
		}
		return ""
	}}
}

// ofRoot is m with one user.
func ofRoot(m Machine) Machine {
	m.Homes = []string{"root"}
	return m
}

func resolved(t *testing.T, name string, o Options, image Machine) []string {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range s.Resolve(name, image) {
		if d.Preset != name {
			t.Errorf("%+v is of another preset", d)
		}
		out = append(out, d.Source+" "+d.Domain)
	}
	return out
}

func TestPresetsOfTools(t *testing.T) {
	bookworm := "PRETTY_NAME=\"Debian\"\nVERSION_CODENAME=bookworm\n"
	for title, tc := range map[string]struct {
		preset      string
		image, host Machine
		want        []string
	}{
		"PipHasADefault": {"python", machine(map[string]string{pipAt: pipProgram}), Machine{}, []string{"image index.test", "image files.test.example"}},
		"PipOfUpstreamHasADefault": {
			"python", machine(map[string]string{"usr/local/lib/python3.14/site-packages/pip/_internal/models/index.py": pipProgram}), Machine{},
			[]string{"image index.test", "image files.test.example"},
		},
		"PipsSettingsTakeTheDefaultsPlace": {
			"python", machine(map[string]string{
				pipAt: pipProgram,
				"etc/pip.conf": "# [install]\n[global]\nindex-url = https://user:secret@mirror.example.test:8443/simple\nextra_index_url =\n    https://extra.test/a\n    http://more.test/b\n" +
					"[list]\nindex-url = https://list.test\n",
			}), Machine{},
			[]string{"image mirror.example.test", "image extra.test", "image more.test"},
		},
		"AUsersSettingsGoOverTheMachines": {
			"python", machine(map[string]string{
				"etc/pip.conf": "[global]\nindex-url: https://all.test\n", "root/.config/pip/pip.conf": "[install]\nindex-url=https://root.test\n",
			}), Machine{}, []string{"image all.test", "image root.test"}, // each user's own
		},
		"AVariableGoesOverFiles": {
			"python", machine(map[string]string{"etc/pip.conf": "[global]\nindex-url = https://file.test\n"}, "PIP_INDEX_URL", "https://variable.test", "PIP_FIND_LINKS", "/opt/wheels https://links.test/x"),
			Machine{}, []string{"image variable.test", "image links.test"},
		},
		"AFileThatAVariableNamesIsRead": {
			"python", machine(map[string]string{"opt/my.conf": "[global]\nindex-url = https://named.test\n"}, "PIP_CONFIG_FILE", "/opt/my.conf"),
			Machine{}, []string{"image named.test"},
		},
		"TheHostsMirrorIsMet": {
			"python", machine(map[string]string{pipAt: pipProgram}), ofRoot(machine(map[string]string{pipAt: pipProgram, "root/.pip/pip.conf": "[global]\nindex-url = http://nexus/simple\n"})),
			[]string{"host nexus", "image index.test", "image files.test.example"},
		},
		"WhatTheHostSaysTooIsTheHosts": {
			"python", machine(map[string]string{pipAt: pipProgram}), Machine{Files: machine(map[string]string{pipAt: pipProgram}).Files},
			[]string{"host index.test", "host files.test.example"},
		},
		"NpmHasADefault": {"node", machine(map[string]string{npmAt: npmProgram}), Machine{}, []string{"image registry.test"}},
		"NpmOfOldHasADefault": {
			"node", machine(map[string]string{"usr/share/nodejs/npm/lib/utils/config/definitions.js": "define('registry', {\n  default: `https://old.test/`,\n"}), Machine{},
			[]string{"image old.test"},
		},
		"NpmsSettingsTakeTheDefaultsPlace": {
			"node", machine(map[string]string{
				npmAt:                 npmProgram,
				"etc/npmrc":           "; a comment\nregistry = \"https://global.test/\"\n",
				"home/sandbox/.npmrc": "prefix=/home/sandbox/.local\n@ours:registry=https://ours.test\n//ours.test/:_authToken=secret\n",
				"root/.npmrc":         "registry=https://${HOST}/\n",
			}), Machine{}, []string{"image global.test", "image ours.test"},
		},
		"NpmTakesVariables": {"node", machine(map[string]string{npmAt: npmProgram}, "NPM_CONFIG_REGISTRY", "https://variable.test"), Machine{}, []string{"image variable.test"}},
		"AptHasSources": {
			"debian", machine(map[string]string{
				"etc/apt/sources.list":                  "deb [signed-by=/k.gpg] http://one.test/debian bookworm main\ndeb-src http://source.test x main\n",
				"etc/apt/sources.list.d/two.sources":    "Types: deb\nURIs: https://two.test/debian\n https://three.test/debian\nSuites: bookworm\nComponents: main\n\nTypes: deb\nEnabled: no\nURIs: http://off.test\nSuites: x\nComponents: main\n",
				"etc/apt/sources.list.d/old.sources.bk": "Types: deb\nURIs: http://backup.test\nSuites: x\nComponents: main\n",
				"etc/apt/sources.list.d/m.list":         "deb mirror+file:/etc/apt/mirrors bookworm main\ndeb file:/media/cd x main\n",
				"etc/apt/mirrors":                       "# ours\nhttps://four.test/debian\tpriority:1\nfile:/x\n",
			}), Machine{}, []string{"image one.test", "image four.test", "image two.test", "image three.test"},
		},
		"OfTheHostsSourcesThoseOfTheImagesRelease": {
			"debian", machine(map[string]string{"etc/os-release": bookworm}),
			machine(map[string]string{"etc/apt/sources.list": "deb http://mirror.test bookworm-security main\ndeb http://next.test trixie main\ndeb http://third.test bookworm stable\n"}),
			[]string{"host mirror.test"},
		},
		"AnImageWithoutAReleaseHasNoneOfTheHost": {
			"debian", machine(nil), machine(map[string]string{"etc/apt/sources.list": "deb http://mirror.test bookworm main\n"}), nil,
		},
		"WithoutAToolThereIsNothing": {"python", machine(nil), Machine{}, nil},
		"WithoutAnImageTheHostIsThere": {
			"node", Machine{}, ofRoot(machine(map[string]string{"root/.npmrc": "registry=https://host.test\n"})), []string{"host host.test"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, resolved(t, tc.preset, Options{Host: tc.host}, tc.image)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// What an image's author writes there comes out as names of hosts, a few, or not at all.
func TestHostileImages(t *testing.T) {
	many := "[global]\nextra-index-url ="
	for n := range 1000 {
		many += fmt.Sprintf(" https://h%d.test", n)
	}
	for title, tc := range map[string]struct {
		preset string
		image  Machine
		want   int
	}{
		"Addresses":     {"python", machine(map[string]string{"etc/pip.conf": "[global]\nindex-url = http://10.0.0.1/\nextra-index-url = http://[::1]/ http://169.254.169.254/latest http://2130706433/ http://0x7f000001/\n"}), 0},
		"Wildcards":     {"node", machine(map[string]string{"etc/npmrc": "registry=https://*.test/\n@a:registry=https://*/\n@b:registry=https://%2a.test/\n"}), 0},
		"LocalNames":    {"node", machine(map[string]string{"etc/npmrc": "registry=http://localhost/\n@a:registry=http://vault:8200\n"}), 0},
		"OtherSchemes":  {"node", machine(map[string]string{"etc/npmrc": "registry=file:///etc/passwd\n@a:registry=javascript:alert(1)\n@b:registry=//x.test\n"}), 0},
		"ControlSigns":  {"node", machine(map[string]string{"etc/npmrc": "registry=https://a\x1b[2J.test/\n@a:registry=https://\u202etset.a/\n@b:registry=https://a\x00.test\n"}), 0},
		"ManyNames":     {"python", machine(map[string]string{"etc/pip.conf": many}), MaxHosts},
		"ALargeFile":    {"python", machine(map[string]string{"etc/pip.conf": "[global]\nindex-url = https://a.test\n" + strings.Repeat("#", maxSettings)}), 0},
		"LongNames":     {"node", machine(map[string]string{"etc/npmrc": "registry=https://" + strings.Repeat("a.", 200) + "test/\n"}), 0},
		"ManyContinued": {"debian", machine(map[string]string{"etc/apt/sources.list.d/a.sources": "Types: deb\nURIs: http://a.test\n" + strings.Repeat(" x\n", maxSettings/4) + "Suites: x\nComponents: main\n"}), 1},
	} {
		t.Run(title, func(t *testing.T) {
			got := resolved(t, tc.preset, Options{}, tc.image)
			if len(got) != tc.want {
				t.Errorf("%d names, want %d: %q", len(got), tc.want, got)
			}
		})
	}
	t.Run("ManyFiles", func(t *testing.T) {
		files := make(map[string]string)
		for n := range 5000 {
			files[fmt.Sprintf("etc/apt/sources.list.d/%d.list", n)] = fmt.Sprintf("deb http://h%d.test x main\n", n)
		}
		if got := resolved(t, "debian", Options{}, machine(files)); len(got) != MaxHosts {
			t.Errorf("%d names of many files", len(got))
		}
	})
	t.Run("LinksAndPipes", func(t *testing.T) {
		outside := filepath.Join(t.TempDir(), "npmrc")
		if err := os.WriteFile(outside, []byte("registry=https://outside.test\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for _, err := range []error{
			os.MkdirAll(filepath.Join(dir, "etc/apt/sources.list.d"), 0o755),
			os.MkdirAll(filepath.Join(dir, "root"), 0o755),
			os.Symlink(outside, filepath.Join(dir, "etc/npmrc")),
			os.Symlink("../../../../../../../../../.."+outside, filepath.Join(dir, "root/.npmrc")),
			os.Symlink("/proc/self/environ", filepath.Join(dir, "etc/os-release")),
			syscall.Mkfifo(filepath.Join(dir, "etc/pip.conf"), 0o644),
			syscall.Mkfifo(filepath.Join(dir, "etc/apt/sources.list"), 0o644),
			os.Symlink(".", filepath.Join(dir, "etc/apt/sources.list.d/loop.list")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		for _, name := range []string{"python", "node", "debian"} {
			if got := resolved(t, name, Options{}, Machine{Files: root.FS(), Homes: []string{"root"}}); got != nil {
				t.Errorf("%s: %q", name, got)
			}
		}
	})
}

func TestListsOfTheOperator(t *testing.T) {
	s, err := New(Options{Lists: map[string][]string{"python": {"Mirror.Test."}, "intranet": {"git.test", "*.pages.test"}, "huggingface": {}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"debian", "github", "intranet", "node", "python"}, s.Names()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	image := machine(map[string]string{pipAt: pipProgram})
	if diff := cmp.Diff([]sandbox.PresetDomain{{Preset: "python", Domain: "mirror.test", Source: sandbox.PresetFromOperator}}, s.Resolve("python", image)); diff != "" {
		t.Errorf("an operator's list is not alone (-want +got)\n%s", diff)
	}
	if got := s.Resolve("intranet", image); len(got) != 2 || got[1].Domain != "*.pages.test" {
		t.Errorf("%+v", got)
	}
	if s.Reads("python") || !s.Reads("node") {
		t.Error("only what a tool says depends on an image")
	}
	if got, err := s.Check("f", []string{"node", "github", "node"}); err != nil || len(got) != 2 {
		t.Errorf("%q, %v", got, err)
	}
	_, err = s.Check("f", []string{"huggingface"})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.As(err).Fields[0].Message, "debian, github, intranet, node, python") {
		t.Errorf("one that there is not: %v", err)
	}
	for title, lists := range map[string]map[string][]string{
		"no name":         {"": {"a.test"}},
		"an upper case":   {"Python": {"a.test"}},
		"a dot":           {"a.test": {"a.test"}},
		"a digit first":   {"1a": {"a.test"}},
		"a long name":     {strings.Repeat("a", maxName+1): {"a.test"}},
		"an address":      {"a": {"10.0.0.1"}},
		"no name at all":  {"a": {"a b"}},
		"too many names":  {"a": make([]string, sandbox.MaxAllowDomains+1)},
		"a hidden letter": {"a\x00": {"a.test"}},
	} {
		if _, err := New(Options{Lists: lists}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", title, err)
		}
	}
	full := make(map[string][]string)
	for n := range maxPresets {
		full[fmt.Sprintf("p%d", n)] = []string{"a.test"}
	}
	if _, err := New(Options{Lists: full}); !fault.Is(err, fault.Invalid) {
		t.Errorf("too many presets: %v", err)
	}
}

func TestPublishedPresetsSaySoWithSourceAndDate(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name := range owners() {
		if about := s.About(name); !strings.Contains(about, "2026") || !strings.Contains(about, "not tried") {
			t.Errorf("%s: %q", name, about)
		}
		for _, d := range s.Resolve(name, Machine{}) {
			if got, err := sandbox.CheckDomain("", d.Domain); err != nil || got != d.Domain || d.Source != sandbox.PresetPublished {
				t.Errorf("%+v: %v", d, err)
			}
		}
	}
}

func TestSettingsAsVariables(t *testing.T) {
	files := fstest.MapFS{
		"etc/pip.conf":   {Data: []byte("[global]\nindex-url = https://u:p@pypi.mirror.test/simple\nextra-index-url = /opt/wheels\n trusted-host = x\n[install]\ntrusted-host = pypi.mirror.test:8443 $(id)\nfind-links = /opt/wheels\n")},
		"home/me/.npmrc": {Data: []byte("registry=https://npm.mirror.test/\n")},
	}
	got := Machine{Files: files, Homes: []string{"home/me"}}.Variables()
	want := map[string]string{"PIP_INDEX_URL": "https://u:p@pypi.mirror.test/simple", "PIP_TRUSTED_HOST": "pypi.mirror.test:8443", "npm_config_registry": "https://npm.mirror.test/"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (Machine{}).Variables(); len(got) > 0 {
		t.Errorf("of nothing: %v", got)
	}
}
