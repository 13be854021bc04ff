package launch

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A group is a job object: a worker and everything it started. The system ends its
// processes when the last handle to it is closed, which happens when the launcher dies.
// Processes that a worker starts before it is put into the object, in its first moments,
// are not included.
type group struct {
	mu   sync.Mutex
	pid  int
	job  windows.Handle
	gone bool // job is closed
}

// attributes make a worker the leader of a console group, so that it can be sent its
// own Ctrl-Break.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

func newGroup(leader *os.Process) (*group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("create a job object: %w", err)
	}
	if err := assign(job, leader.Pid); err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	return &group{pid: leader.Pid, job: job}, nil
}

func assign(job windows.Handle, pid int) error {
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		return fmt.Errorf("set up the job object: %w", err)
	}
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return fmt.Errorf("open the process: %w", err)
	}
	defer func() { _ = windows.CloseHandle(process) }()
	if err := windows.AssignProcessToJobObject(job, process); err != nil {
		return fmt.Errorf("put the process into its job object: %w", err)
	}
	return nil
}

// signal supports SIGKILL, which ends the group, and SIGTERM and SIGINT, which are sent
// as Ctrl-Break. A Go program sees that as os.Interrupt.
func (g *group) signal(sig syscall.Signal) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return nil
	}
	switch sig {
	case syscall.SIGKILL:
		return windows.TerminateJobObject(g.job, 1)
	case syscall.SIGTERM, syscall.SIGINT:
		return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(g.pid))
	}
	return fmt.Errorf("signal %v does not exist on Windows", sig)
}

// wait waits until the leader exits and ends the rest of the group.
func (g *group) wait(leader *exec.Cmd) error {
	err := leader.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	_ = windows.TerminateJobObject(g.job, 1)
	_ = windows.CloseHandle(g.job)
	return err
}
