// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/image"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
)

// checkSystem checks what holds for every image that is built here.
func checkSystem(t *testing.T, img image.Image) {
	t.Helper()
	for title, tc := range map[string]struct{ uid, script, want string }{
		"FilesAreCopied":    {"1000", `mkdir a b; echo green >a/leaf; rsync -a a/ b/; cat b/leaf; ssh -V 2>&1 | cut -c 1-7; wget --version | cut -c 1-8 | head -n 1`, "green\nOpenSSH\nGNU Wget"},
		"GitCommits":        {"1000", `git init -q .; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one; git log --format=%s`, "one"},
		"RipgrepFinds":      {"1000", `echo needle >a; rg -l needle`, "a"},
		"JqReads":           {"1000", `echo '{"a":[1,2]}' | jq -c .a`, "[1,2]"},
		"CurlSpeaksTLS":     {"1000", `curl --version | grep -o ' https ' | tr -d ' '`, "https"},
		"TheUserIsSandbox":  {"1000", `id; echo ~; whoami`, "uid=1000(sandbox) gid=1000(sandbox) groups=1000(sandbox)\n/home/sandbox\nsandbox"},
		"TheSystemIsNotIts": {"1000", `for d in / /etc /usr /usr/local/bin /usr/local/lib/node_modules /var/lib/dpkg /root /opt; do if [ -w "$d" ]; then echo "$d"; fi; done`, ""},
		"TheHostIsNotNamed": {"0", `cat /etc/hostname; cat /etc/machine-id /etc/resolv.conf; for d in /tmp /var/tmp /var/log /var/log/apt /run /var/lib/apt/lists /var/cache/apt/archives; do ls -A "$d"; done`, "sandbox\napt\nlock\npartial"},
		"DpkgIsInOrder":     {"0", `dpkg --audit; apt-get -qq check; dpkg --configure -a; apt-get -s -qq autoremove`, ""},
	} {
		t.Run(title, func(t *testing.T) {
			if got := run(t, img, tc.uid, tc.script); got != tc.want {
				t.Errorf("it prints %q, want %q", got, tc.want)
			}
		})
	}

	t.Run("ItHoldsNoDeviceSocketOrFifo", func(t *testing.T) {
		var files, size int64
		err := filepath.WalkDir(img.Root, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if typ := d.Type(); !typ.IsRegular() && !typ.IsDir() && typ != os.ModeSymlink {
				t.Errorf("%s is a %s", path, typ)
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && st.Uid != 1000 && !strings.HasPrefix(path, img.Root+"/var/") {
				t.Errorf("%s belongs to uid %d", path, st.Uid)
			}
			files++
			size += info.Size()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if files != img.Files || img.SizeBytes < size/2 {
			t.Errorf("it has %d entries and %d bytes, said are %d and %d", files, size, img.Files, img.SizeBytes)
		}
	})

	t.Run("OnlyItsOwnerReachesItOnTheHost", func(t *testing.T) {
		// The image holds setuid programs that are not updated on this host.
		fd, err := unix.Open(filepath.Dir(filepath.Dir(img.Root)), unix.O_PATH, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&0o077 != 0 {
			t.Errorf("the directory of the images has mode %o (%v)", st.Mode&0o777, err)
		}
	})
}

func TestBaseImage(t *testing.T) {
	skiptest.WithoutRoot(t, "it enters an image")
	img := imagetest.Base(t)
	checkSystem(t, img)

	for title, tc := range map[string]struct{ uid, script, want string }{
		"SmallToolsAreThere":   {"1000", `command -v less unzip xz ps top nano vi file patch zip bzip2 bash sort tar gzip find sed awk | wc -l`, "18"},
		"CertificatesAreThere": {"1000", `test "$(grep -c BEGIN /etc/ssl/certs/ca-certificates.crt)" -gt 50; echo "$?"`, "0"},
		"TheLocaleIsUTF8":      {"1000", `locale charmap; echo é | wc -m`, "UTF-8\n2"},
		"TimeZonesAreThere":    {"1000", `TZ=Europe/Paris date -d @0 +%H`, "01"},
		"ItsDirectoriesAreIts": {"1000", `stat -c '%a %U %n' /workspace /artifacts ~ ~/.local ~/.local/bin /tmp /var/tmp | tr '\n' ';'; touch /workspace/a /artifacts/a ~/a /tmp/a /var/tmp/a`, "755 sandbox /workspace;755 sandbox /artifacts;755 sandbox /home/sandbox;755 sandbox /home/sandbox/.local;755 sandbox /home/sandbox/.local/bin;1777 root /tmp;1777 root /var/tmp;"},
		"ItHasOnlyWhatItSays":  {"0", `for n in python python3 pip node npm gcc cc make; do if command -v "$n"; then echo "$n"; fi; done; ls -d /usr/lib/python3*/ 2>/dev/null || true`, ""},
	} {
		t.Run(title, func(t *testing.T) {
			if got := run(t, img, tc.uid, tc.script); got != tc.want {
				t.Errorf("it prints %q, want %q", got, tc.want)
			}
		})
	}

	t.Run("VersionsSayWhatIsReallyInside", func(t *testing.T) {
		for tool, script := range map[string]string{
			"debian": `cat /etc/debian_version`, "git": `dpkg-query -W -f '${source:Upstream-Version}' git`, "python": ``, "node": ``, "npm": ``,
			"bash": `echo "${BASH_VERSION%%(*}"`, "curl": `dpkg-query -W -f '${source:Upstream-Version}' curl`,
		} {
			if got, want := img.Versions[tool], run(t, img, "1000", script); got != want {
				t.Errorf("%s is said to be %q and is %q", tool, got, want)
			}
		}
	})
	t.Run("WhatIsSaidToBeAbsentIs", func(t *testing.T) {
		for _, name := range []string{"docker", "gcc", "node", "python3"} {
			if !slices.Contains(img.Absent, name) {
				t.Errorf("it lacks %v, want %s among them", img.Absent, name)
			}
		}
		for _, name := range img.Absent {
			run(t, img, "1000", "! command -v "+name)
		}
	})
}
