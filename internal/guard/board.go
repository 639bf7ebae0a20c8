package guard

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"tapin/internal/trouble"
)

// BoardFile is where the daemon leaves its own troubles for the sidecar, which
// shows them with its own.
const BoardFile = "troubles.json"

// WriteBoard leaves a list, or takes it away when it is empty.
func WriteBoard(home string, all []trouble.Trouble) error {
	file := filepath.Join(home, BoardFile)
	if len(all) == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return replace(file, append(raw, '\n'))
}

// ReadBoard is what the daemon of a home left.
func ReadBoard(home string) (all []trouble.Trouble) {
	raw, err := readAtMost(filepath.Join(home, BoardFile), mostBytes)
	if err != nil || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}
