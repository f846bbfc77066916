// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preset

import (
	"fmt"
	"regexp"
	"strings"
)

// pip returns the hosts that pip fetches from on m: those of its settings, and of its own default
// where these name no index.
func pip(m Machine, _ *Machine) []string {
	homes := m.Homes
	if len(homes) == 0 {
		homes = []string{""}
	}
	var out []string
	for _, home := range homes { // each user has settings of their own
		says := pipSays(m, home)
		index := hosts(strings.Fields(says["index-url"])...)
		if index == nil && says["index-url"] == "" {
			index = pipDefault(m)
		}
		out = append(out, index...)
		out = append(out, hosts(strings.Fields(says["extra-index-url"]+" "+says["find-links"])...)...)
	}
	return out
}

// pipVariables are the variables by which pip takes a setting.
var pipVariables = map[string]string{"index-url": "PIP_INDEX_URL", "extra-index-url": "PIP_EXTRA_INDEX_URL", "find-links": "PIP_FIND_LINKS", trustedHost: "PIP_TRUSTED_HOST"}

// trustedHost are hosts that pip takes packages from without TLS.
const trustedHost = "trusted-host"

// pipSays returns what pip's files and variables say of where packages are, to a user of m.
func pipSays(m Machine, home string) map[string]string {
	files := []string{"etc/xdg/pip/pip.conf", "etc/pip.conf"}
	if home != "" {
		files = append(files, home+"/.pip/pip.conf", home+"/.config/pip/pip.conf")
	}
	if named := strings.TrimPrefix(m.env("PIP_CONFIG_FILE"), "/"); named != "" {
		files = append(files, named)
	}
	says := make(map[string]string)
	for _, f := range files { // the later goes over the earlier
		for key, value := range pipSettings(m.read(f, maxSettings)) {
			says[key] = value
		}
	}
	for key, variable := range pipVariables {
		if v := m.env(variable); v != "" {
			says[key] = v
		}
	}
	return says
}

// pipSettings reads what a pip.conf says of where packages are, for pip install.
func pipSettings(text string) map[string]string {
	sections := map[string]map[string]string{"global": {}, "install": {}}
	var section map[string]string
	key := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case trimmed[0] == '[':
			section, key = sections[strings.TrimSuffix(trimmed[1:], "]")], ""
		case line[0] == ' ' || line[0] == '\t':
			if section != nil && key != "" {
				section[key] += " " + trimmed
			}
		default:
			key = ""
			at := strings.IndexAny(trimmed, "=:")
			if at < 0 || section == nil {
				continue
			}
			name := strings.TrimLeft(strings.ToLower(strings.ReplaceAll(strings.TrimSpace(trimmed[:at]), "_", "-")), "-")
			switch name {
			case "index-url", "extra-index-url", "find-links", trustedHost:
				key = name
				section[key] = strings.TrimSpace(trimmed[at+1:])
			}
		}
	}
	out := sections["global"]
	for k, v := range sections["install"] {
		out[k] = v
	}
	return out
}

// pipIndex finds the index that pip has for a default in its own program, and where that one's files are.
var pipIndex = regexp.MustCompile(`(?m)^PyPI\s*=\s*PackageIndex\(\s*["'](https?://[^"'\s]+)["'],\s*file_storage_domain\s*=\s*["']([^"'\s/]+)["']`)

// newestPython is the last minor version of Python 3 whose directory is looked for.
const newestPython = 30

func pipDefault(m Machine) []string {
	const program = "/pip/_internal/models/index.py"
	dirs := []string{"usr/lib/python3/dist-packages"}
	for minor := newestPython; minor >= 6; minor-- {
		for _, format := range []string{"usr/local/lib/python3.%d/site-packages", "usr/local/lib/python3.%d/dist-packages", "usr/lib/python3.%d/site-packages"} {
			dirs = append(dirs, fmt.Sprintf(format, minor))
		}
	}
	for _, dir := range dirs {
		if found := pipIndex.FindStringSubmatch(m.read(dir+program, maxSettings)); found != nil {
			return hosts(found[1], "https://"+found[2])
		}
	}
	return nil
}
