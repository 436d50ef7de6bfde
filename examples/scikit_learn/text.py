"""Text classification with scikit-learn: words to numbers, a grid search, a report.

python examples/scikit_learn/text.py
python -m apcg.patch examples/scikit_learn/text.py    # the same program, solved by apcg
"""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import accuracy_score, classification_report
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

TOPICS = {
    "cooking": "oven flour butter sugar recipe pan salt bake dough garlic onion stir",
    "sailing": "wind harbour sail mast rope anchor tide deck knot buoy wave course",
    "music": "chord melody tempo guitar piano rhythm note song drum choir tune scale",
    "gardens": "soil seed rose prune water root leaf compost bloom spade hedge wind",
}
COMMON = "the a and with for then we more some time day good first take make long well"


def documents(count, rng):
    """Texts of forty words, most of them common, and their topics."""
    texts, topics = [], rng.choice(list(TOPICS), count)
    for topic in topics:
        other = rng.choice(list(TOPICS))
        parts = (COMMON, 26), (TOPICS[topic], 8), (TOPICS[other], 6)
        texts.append(" ".join(" ".join(rng.choice(words.split(), k)) for words, k in parts))
    return texts, topics


texts, topics = documents(600, np.random.default_rng(0))
train, test, y_train, y_test = train_test_split(texts, topics, random_state=0)
models = {
    "softmax": LogisticRegression(C=10.0),
    "support vector machine": LinearSVC(),
    "ridge": RidgeClassifier(),
}
for name, model in models.items():
    made = make_pipeline(TfidfVectorizer(), model).fit(train, y_train)
    print(f"{name}: accuracy {accuracy_score(y_test, made.predict(test)):.3f}")
search = GridSearchCV(
    make_pipeline(TfidfVectorizer(), LogisticRegression()),
    {"logisticregression__C": [0.1, 1.0, 10.0]},
    scoring="neg_log_loss",
).fit(train, y_train)
print(f"best: {search.best_params_}, log loss {-search.best_score_:.3f}")
print(classification_report(y_test, search.predict(test), digits=3))
