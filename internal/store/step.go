package store

import "os"

// Step is a step of a change, after which the files are as a kill may leave them.
type Step string

// The steps. A file that is replaced goes through all but the last; a line that
// is appended through the first three.
const (
	HalfWritten Step = "half written"
	Written     Step = "written"
	Synced      Step = "synced"
	Named       Step = "named"         // renamed or linked to where readers look
	FolderKept  Step = "folder synced" // and so survives a power cut
	Removed     Step = "removed"
)

// Steps lists all steps.
func Steps() []Step { return []Step{HalfWritten, Written, Synced, Named, FolderKept, Removed} }

// made tells whoever wants to hear it that a step was made.
func (h *Home) made(change string, step Step) {
	if h.step != nil {
		h.step(change, step)
	}
}

func (h *Home) writeFile(change string, f *os.File, data []byte, sync bool) error {
	if h.step != nil { // a kill may leave any part of it; a half will do
		if _, err := f.Write(data[:len(data)/2]); err != nil {
			return err
		}
		h.made(change, HalfWritten)
		data = data[len(data)/2:]
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	h.made(change, Written)
	if !sync {
		return nil
	}
	if err := f.Sync(); err != nil {
		return err
	}
	h.made(change, Synced)
	return nil
}
