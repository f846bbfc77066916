// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package overroot_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/overroot"
)

// diskVariable is set in a process with namespaces of its own, and names the directory that is its disk.
const diskVariable = "SANDPIT_OVERROOT_TEST_DISK"

// freshVariable has such a process begin with no changes.
const freshVariable = "SANDPIT_OVERROOT_TEST_FRESH"

func TestMain(m *testing.M) {
	if disk := os.Getenv(diskVariable); disk != "" {
		runtime.LockOSThread()
		if err := inside(disk, os.Args[1]); err != nil {
			fmt.Println("inside:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// inside is a container: its root is a directory of the disk's parent, with a mount at /mine.
func inside(disk, shell string) error {
	top := filepath.Dir(disk)
	root := filepath.Join(top, "root")
	for _, m := range []struct {
		from, to string
		flags    uintptr
	}{
		{"", "/", unix.MS_REC | unix.MS_PRIVATE}, {root, root, unix.MS_BIND | unix.MS_REC}, {disk, root + "/disk", unix.MS_BIND},
		{"/proc", root + "/proc", unix.MS_BIND | unix.MS_REC}, {"/bin", root + "/bin", unix.MS_BIND | unix.MS_REC}, {"/lib", root + "/lib", unix.MS_BIND | unix.MS_REC},
		{"/lib64", root + "/lib64", unix.MS_BIND | unix.MS_REC}, {"/usr", root + "/usr", unix.MS_BIND | unix.MS_REC}, {"/dev/null", root + "/dev/null", unix.MS_BIND}, {top + "/mine", root + "/deep/mine", unix.MS_BIND}, {top + "/name", root + "/etc/name", unix.MS_BIND},
	} {
		if err := unix.Mount(m.from, m.to, "", m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.to, err)
		}
	}
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := overroot.Enter("/disk", os.Getenv(freshVariable) != ""); err != nil {
		return err
	}
	out, err := exec.Command("/bin/sh", "-c", shell).CombinedOutput()
	fmt.Print(string(out))
	return err
}

// container makes what inside needs, and returns the directory that is the disk, and what runs shell text in one that begins.
func container(t *testing.T) (disk string, run func(shell string) string) {
	t.Helper()
	skiptest.WithoutRoot(t, "it makes user namespaces")
	top := t.TempDir()
	for _, dir := range []string{"disk", "mine", "root", "root/disk", "root/proc", "root/bin", "root/lib", "root/lib64", "root/usr", "root/deep", "root/dev", "root/deep/mine", "root/etc"} {
		if err := os.Mkdir(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"mine/file": "mine\n", "root/etc/image": "image\n", "root/etc/name": "", "root/dev/null": "", "name": "name\n"} {
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	disk = filepath.Join(top, "disk")
	return disk, func(shell string) string {
		t.Helper()
		cmd := exec.Command("/proc/self/exe", shell)
		cmd.Env = append(os.Environ(), diskVariable+"="+disk)
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: ids, GidMappings: ids, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", shell, err, out)
		}
		return strings.TrimSpace(string(out))
	}
}

func TestWhatIsChangedIsThereTheNextTime(t *testing.T) {
	_, run := container(t)
	if got := run("cat /etc/image /deep/mine/file /etc/name; echo new > /etc/new; rm /etc/image; ls /disk; echo mine2 > /deep/mine/file"); got != "image\nmine\nname" {
		t.Errorf("at first: %q", got)
	}
	if got := run("cat /etc/new /deep/mine/file; ls /etc; ls -A /disk /disk/.."); !strings.HasPrefix(got, "new\nmine2\nname\nnew\n") || strings.Contains(got, "upper") {
		t.Errorf("the next time: %q", got)
	}
}

func TestAFreshRootIsTheImage(t *testing.T) {
	_, run := container(t)
	run("echo new > /etc/new; rm /etc/image; mkdir -p /etc/full/of; echo mine2 > /deep/mine/file")
	t.Setenv(freshVariable, "1")
	if got := run("cat /etc/image; ls /etc; cat /deep/mine/file"); got != "image\nimage\nname\nmine2" {
		t.Errorf("got %q", got)
	}
}

// What mounts are put on may be another thing by then, made by who has the root while there was no mount on it.
func TestWhatMountsArePutOnIsMade(t *testing.T) {
	for _, attack := range []string{
		"ln -s /etc deep", "ln -s / deep", "ln -s ../.. deep", "echo file > deep", "mkfifo deep", "mknod deep c 0 0", "mkdir deep; ln -s /etc deep/mine", "mkdir deep; mkfifo deep/mine", "mkdir deep; mknod deep/mine c 0 0", "mkdir deep; ln -s . deep/mine",
		"ln -s / etc", "mkdir -p etc/name/full", "mkdir etc; ln -s /bin/sh etc/name", "mkdir etc; mknod etc/name c 0 0", "ln -s /proc/self/root/etc etc", "ln -s /disk/upper etc",
	} {
		t.Run(attack, func(t *testing.T) {
			disk, run := container(t)
			run("true")
			cmd := exec.Command("/bin/sh", "-c", attack)
			cmd.Dir = filepath.Join(disk, "upper")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got := run("cat /deep/mine/file /etc/name; ls -A /disk"); got != "mine\nname" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestADirectoryThatIsNoMountIsRefused(t *testing.T) {
	if err := overroot.Enter(t.TempDir(), false); err == nil || !strings.Contains(err.Error(), "nothing is mounted at") {
		t.Errorf("got %v", err)
	}
}
