"""Text classification.

Which of three kinds of support ticket is it? Words are counted by tf-idf, which gives a sparse
matrix, and the softmax is fitted to a certified gap. The picture shows the words that speak most
for each class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from apcg import APCGClassifier

topics = {
    "billing": "invoice payment refund charge card price receipt account month plan",
    "login": "password login account reset email code locked token browser session",
    "delivery": "parcel courier delivery address late tracking box damaged door order",
}
common = [
    "please",
    "help",
    "hello",
    "thanks",
    "issue",
    "today",
    "problem",
    "customer",
    "support",
    "again",
]
rng = np.random.default_rng(0)
texts, labels = [], []
for label, words in topics.items():
    for _ in range(300):
        said = list(rng.choice(words.split(), 3)) + list(rng.choice(common, 6))
        said += list(rng.choice(" ".join(topics.values()).split(), 2))  # words of any topic
        texts.append(" ".join(said))
        labels.append(label)

model = make_pipeline(TfidfVectorizer(), APCGClassifier("logistic", alpha=1e-3, random_state=0))
print("accuracy", cross_val_score(model, texts, labels, cv=5).mean().round(2))
model.fit(texts, labels)
print("gap below 1e-6:", model[-1].duality_gap_ < 1e-6)
print(model.predict(["the card was charged twice", "my parcel is late"]))

names = model[0].get_feature_names_out()
figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, label, weights in zip(axes, model[-1].classes_, model[-1].coef_, strict=True):
    best = np.argsort(weights)[-6:]
    ax.barh(names[best], weights[best], color="#3f51b5")
    ax.set_title(label)
    ax.set_xlabel("weight")
figure.savefig("words.png", dpi=110)
