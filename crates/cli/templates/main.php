<?php
// The arguments are JSON in SKILLZ_ARGUMENTS; whatever is printed is the result.
$arguments = json_decode(getenv('SKILLZ_ARGUMENTS'), true);
$words = preg_split('/\s+/', $arguments['text'], -1, PREG_SPLIT_NO_EMPTY);
echo json_encode(['words' => count($words)]), "\n";
